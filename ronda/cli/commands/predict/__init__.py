"""``ronda predict``: training of predictors, and errors in declared sizes."""
