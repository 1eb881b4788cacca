"""A store that is a log of commits: S3, DynamoDB, Firestore, and whatever else can create if absent."""
