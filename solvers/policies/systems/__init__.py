"""Published systems that carry more than a rule from round to round: ONES."""
