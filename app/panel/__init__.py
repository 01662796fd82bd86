"""The web panel: its TypeScript source in `src/`, what builds it, and the build in `dist/`."""
