"""Model Context Protocol: a coding agent drives a search. Agents plan and write; this machine measures."""
