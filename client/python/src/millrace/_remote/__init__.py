"""Objects behind URLs: s3://, gs://, hf://, https://. The client reads them, never the daemon."""
