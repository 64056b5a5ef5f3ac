"""Stand-ins that ship: made-up but deterministic verdicts and canned replies, so that everything runs without a judge or a key."""
