//! The examples of `destinations.toml` that lie beside the shipped bundles: an operator copies one, and what it says is what a
//! host reads.

use waybill::plugin::{Limits, examine_all};

use super::stage::{Bench, copy, repository};

/// The example with host keys in the place of what has to be asked for, as `ssh-keygen -lf -` prints them.
fn filled_in(example: &str) -> String {
    let lines = example.lines().map(|line| match line.split_once("SHA256:replace this with") {
        Some((before, _)) => format!("{before}SHA256:{}\"]", "A".repeat(43)),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// All of them in one partners directory, as an operator who tries everything has them.
#[test]
fn plg_01_every_shipped_example_is_read_with_its_bundle_and_beside_the_others() -> anyhow::Result<()> {
    let partners = tempfile::tempdir()?;
    let mut shipped = 0;
    for entry in std::fs::read_dir(repository().join("plugins/bundles"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let bench = Bench::shipped(&name, "csv-builder")?;
        let example = String::from_utf8(bench.read("destinations.example.toml")?)?;
        bench.write("destinations.toml", &filled_in(&example))?;
        copy(&bench.bundle(), &partners.path().join(&name))?;
        shipped += 1;
    }
    let all = examine_all(partners.path(), &Limits::most())?;
    assert_eq!((all.len(), shipped > 10), (shipped, true));
    for examined in &all {
        let problems: Vec<String> = examined.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, [""; 0], "{}", examined.bundle);
        assert!(!examined.destinations.is_empty(), "{}", examined.bundle);
        for destination in &examined.destinations {
            let of = format!("{}, {}", examined.bundle, destination.name);
            // What the plugins ask for is there, and nothing is described that nobody asks for.
            let asked: Vec<&String> =
                destination.settings.iter().filter(|(name, _)| name == "query").map(|(_, value)| value).collect();
            assert_eq!(asked, destination.queries.iter().collect::<Vec<_>>(), "{of}");
        }
    }
    Ok(())
}
