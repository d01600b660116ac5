//! Released versions of the contract never change, not by a comment: compiled plugins and other repositories stand on them.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::Digest as _;

/// The digests of released files, as `sha256sum` writes them; paths are relative to `wit/`.
const RELEASED: &str = "wit/released.sha256";

/// By version: each file of it with its digest.
fn folders(wit: &Path) -> anyhow::Result<BTreeMap<String, BTreeMap<String, String>>> {
    let mut folders = BTreeMap::new();
    for folder in std::fs::read_dir(wit)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        let version = folder.file_name().to_string_lossy().into_owned();
        let mut files = BTreeMap::new();
        for file in std::fs::read_dir(folder.path())? {
            let file = file?;
            let digest = waybill::job::facts::Sha256(sha2::Sha256::digest(std::fs::read(file.path())?).into());
            files.insert(format!("{version}/{}", file.file_name().to_string_lossy()), digest.to_string());
        }
        folders.insert(version, files);
    }
    Ok(folders)
}

/// What is wrong, in sentences. The newest folder is a draft until another one follows.
fn broken(released: &str, folders: &BTreeMap<String, BTreeMap<String, String>>) -> Vec<String> {
    let recorded: BTreeMap<&str, &str> =
        released.lines().filter_map(|line| line.split_once("  ")).map(|(digest, file)| (file, digest)).collect();
    let newest = folders
        .keys()
        .max_by_key(|version| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>());
    let mut wrong = Vec::new();
    for (version, files) in folders {
        for (file, digest) in files {
            match recorded.get(file.as_str()) {
                Some(recorded) if recorded != digest => {
                    wrong.push(format!("wit/{file} has changed; a change is a new version in a folder of its own"));
                }
                None if Some(version) != newest => {
                    wrong.push(format!("wit/{file} is not in {RELEASED}: add the line {digest}  {file}"));
                }
                _ => {}
            }
        }
    }
    let known: Vec<&String> = folders.values().flat_map(BTreeMap::keys).collect();
    wrong.extend(
        recorded
            .keys()
            .filter(|file| !known.iter().any(|known| known == *file))
            .map(|file| format!("wit/{file} was released and is gone")),
    );
    wrong
}

#[test]
fn a_released_version_of_the_contract_does_not_change() -> anyhow::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let released = std::fs::read_to_string(repository.join(RELEASED))?;
    assert!(released.lines().count() > 0);
    assert_eq!(broken(&released, &folders(&repository.join("wit"))?), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_changed_a_missing_and_an_unrecorded_version_are_found() {
    let folder = |version: &str, digest: &str| {
        (version.to_owned(), BTreeMap::from([(format!("{version}/partner.wit"), digest.to_owned())]))
    };
    let two = BTreeMap::from([folder("0.9.0", "aa"), folder("0.10.0", "bb")]);
    assert!(broken("aa  0.9.0/partner.wit\n", &two).is_empty(), "the newest is a draft");
    for (released, told) in [
        ("cc  0.9.0/partner.wit\n", "wit/0.9.0/partner.wit has changed"),
        ("", "add the line aa  0.9.0/partner.wit"),
        ("aa  0.9.0/partner.wit\ndd  0.8.0/partner.wit\n", "0.8.0/partner.wit was released and is gone"),
        ("aa  0.9.0/partner.wit\ncc  0.10.0/partner.wit\n", "wit/0.10.0/partner.wit has changed"),
    ] {
        let wrong = broken(released, &two);
        assert!(wrong.len() == 1 && wrong[0].contains(told), "{told}: {wrong:?}");
    }
}
