"""Chat models; absent unless configured."""
