//! What each login may do, tried for real: the product of roles, tables, columns and privileges, the edges of a job, and
//! what never changes.

mod edges;
mod grants;
mod identity;
