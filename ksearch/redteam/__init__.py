"""Programs that cheat, and the proof that the evaluator stops each of them by the defence that is named for it."""
