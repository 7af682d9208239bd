"""Evaluation: BLEU, significance tests, Table 1."""

from rnnsmt.evaluation.operations import (
    ComparedSystems,
    OracleBleu,
    Table,
    compare,
    oracle,
    provenance,
    score,
    table,
)

__all__ = ["ComparedSystems", "OracleBleu", "Table", "compare", "oracle", "provenance", "score", "table"]
