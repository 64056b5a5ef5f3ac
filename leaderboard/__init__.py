"""The board: ledgers in, standings, figures, pages and MLflow runs out. Measures nothing and ranks by one rule."""
