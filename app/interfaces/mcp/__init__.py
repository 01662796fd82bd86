"""The MCP door: the verbs as tools, memories and sessions as resources, over HTTP and standard input and output."""
