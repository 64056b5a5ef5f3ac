"""Figures about the judge itself, measured on this machine; raw output goes to results/."""
