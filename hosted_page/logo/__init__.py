"""A merchant's logo: read from an upload, drawn for pages and chats, stored, and served."""
