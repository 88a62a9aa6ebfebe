"""From what users have to problems: checked, flat, in one dtype and memory order."""
