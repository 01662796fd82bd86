"""The HTTP service: its application, and the socket that it is served on."""
