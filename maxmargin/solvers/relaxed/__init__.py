"""Solvers of the relaxed objective of graphs with cycles, clique by clique (*IDAL*)."""
