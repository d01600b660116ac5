//! Migrations and the contract are embedded at compile time; cargo does not see new files by itself.
fn main() {
    println!("cargo::rerun-if-changed=../migrations");
    println!("cargo::rerun-if-changed=../wit");
}
