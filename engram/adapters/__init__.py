"""Adapters: the memory behind the interfaces of agent frameworks, one module per framework."""
