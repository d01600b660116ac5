//! Destinations that are no SFTP server: the same worker, gate and verdict, over other requests.

mod directory;
mod objects;
