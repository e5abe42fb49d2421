"""The data sets of queries."""

from tests.sql.conftest import by_hand, edges, project, query, small

__all__ = ["by_hand", "edges", "project", "query", "small"]
