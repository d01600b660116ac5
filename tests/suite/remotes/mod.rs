//! Destinations that are no SFTP server: the same worker, gate and verdict, over other requests.

mod alike;
mod directory;
mod objects;
mod place;

pub use place::Place;
