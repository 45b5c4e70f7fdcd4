"""What both apps need of the database: keys, rows as SQL has them, counts that are written in batches."""
