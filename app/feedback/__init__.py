"""What people say of memories, and what follows from it."""
