"""The best programs of a run as one that dispatches on shape: chosen by what was measured, then composed."""

from ksearch.portfolio.choosing import Choice, NothingToCombine, PortfolioError, choose
from ksearch.portfolio.composing import compose
from ksearch.portfolio.making import Portfolio, Row, make_portfolio

__all__ = ["Choice", "NothingToCombine", "Portfolio", "PortfolioError", "Row", "choose", "compose", "make_portfolio"]
