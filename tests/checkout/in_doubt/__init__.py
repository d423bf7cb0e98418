"""Operations in doubt, from the provider's silence to the end of the order."""
