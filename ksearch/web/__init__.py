"""The dashboard: a server that reads a store, and the pages it serves. Extra `ui`; see docs/ui.md."""
