"""Models: SavedModels of a folder, each served by a session on a task, over the Open Inference Protocol."""
