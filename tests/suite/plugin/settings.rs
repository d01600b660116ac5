//! What plugins are told, and the compiled cache behind them.

use super::fixture::{Partners, Table, destination, expected};

#[tokio::test]
async fn a_second_start_loads_what_the_first_compiled_and_mends_what_was_changed() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "")?;
    partners.load_only().await?;
    let files = || -> anyhow::Result<Vec<_>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(partners.cache())? {
            let path = entry?.path();
            if path.extension().is_none() {
                continue; // The lock.
            }
            files.push((path.clone(), std::fs::read(path)?));
        }
        files.sort();
        Ok(files)
    };
    let compiled = files()?;
    assert_eq!(compiled.len(), 2, "one for each component");
    for (path, bytes) in &compiled {
        let mut changed = bytes.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 0x40;
        std::fs::write(path, changed)?;
    }
    let bundle = partners.load_only().await?;
    assert_eq!(files()?, compiled, "what was changed on disk was compiled again");
    let built = partners.build(&bundle, &destination(&bundle, &[], Table(10))).await?;
    assert_eq!(built.file.read_at(0, 1000).await?, expected(10));
    Ok(())
}

#[tokio::test]
async fn the_manifests_options_reach_the_plugin_and_the_operators_settings_win() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    partners.bundle("one", "misbehaving-builder", "misbehaving-destination", "[options]\nbehaviour = 'nothing'\n")?;
    let bundle = partners.load_only().await?;
    let built = partners.build(&bundle, &destination(&bundle, &[], Table(3))).await?;
    assert_eq!((built.rows, built.file.bytes()), (1, 0), "the option asked for nothing");

    let toml = super::fixture::destination_of("one", 22, super::fixture::HOST_KEY);
    partners.write("one", "destinations.toml", format!("{toml}[destination.settings]\nbehaviour = 'well'\n"))?;
    let bundle = partners.load_only().await?;
    let built = partners.build(&bundle, &destination(&bundle, &[], Table(3))).await?;
    assert_eq!(built.file.read_at(0, 1000).await?, expected(3));
    Ok(())
}
