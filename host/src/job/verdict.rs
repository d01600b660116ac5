//! The verdict: what the host concludes from facts already compared.
