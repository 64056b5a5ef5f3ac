"""K-Search: a tree of intents that the model itself keeps and revises, worked on one action at a time."""
