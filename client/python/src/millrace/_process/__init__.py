"""This process as the package sees it: its end, fork(), its threads' waits, and warnings that point at the program's own lines."""
