"""The referee: types, judging, budgets, records and one trial from start to champion. Knows neither Ray nor MLflow."""
