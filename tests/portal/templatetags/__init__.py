"""The filters of the portal's templates."""
