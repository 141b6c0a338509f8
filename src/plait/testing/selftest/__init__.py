"""Upstream's own tests of MPTCP (tools/testing/selftests/net/mptcp), unmodified, in virtual time and over seeds."""
