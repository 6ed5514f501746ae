"""What a plan and a cliff show: the answer in words, a table, figures, JSON, a folder."""

from kvsim.reporting.plan.folder import write_cliff, write_plan
from kvsim.reporting.plan.summary import cliff_summary, plan_summary

__all__ = ["cliff_summary", "plan_summary", "write_cliff", "write_plan"]
