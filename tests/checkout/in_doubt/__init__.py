"""Operations in doubt, from the first unanswered call until the order has ended."""
