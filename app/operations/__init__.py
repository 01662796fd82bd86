"""The state of the service and its store: what people and orchestrators ask."""
