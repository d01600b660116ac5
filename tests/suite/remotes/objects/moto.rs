//! The same single requests before a store that is not ours. A whole delivery to it is in `suite/servers/products.rs`.

use waybill::job::facts::Found;
use waybill::remote::{Endpoint, ObjectsEndpoint, RemoteError, Session, SessionLimits, look};
use waybill_tests::Moto;
use waybill_tests::object_store::PREFIX;

use super::endpoint;

fn of(moto: &Moto) -> Endpoint {
    endpoint(&moto.url(), moto.key_files(), PREFIX, Some(moto.ca_file()))
}

async fn session(moto: &Moto) -> anyhow::Result<Session> {
    Ok(Session::connect(&of(moto), &SessionLimits::default()).await?)
}

#[tokio::test]
async fn del_04_moto_refuses_a_second_create_of_a_name_and_keeps_the_first() -> anyhow::Result<()> {
    let moto = Moto::start().await?;
    let session = session(&moto).await?;
    session.create("k.csv", b"the first".to_vec()).await?;
    moto.put("theirs.csv", b"somebody else's")?;
    for (name, content) in [("k.csv", &b"the first"[..]), ("theirs.csv", b"somebody else's")] {
        let second = session.create(name, b"the second".to_vec()).await.expect_err(name);
        assert!(!second.may_exist, "{second:?}");
        assert!(
            matches!(&second.error, RemoteError::Refused { code: Some(11), text } if text.contains("412")),
            "{second:?}"
        );
        assert_eq!(moto.read(name)?, content);
    }
    assert_eq!(moto.names()?, ["k.csv", "theirs.csv"]);
    assert!(session.is_usable());
    Ok(())
}

#[tokio::test]
async fn names_that_must_be_encoded_ranges_listings_and_removals_are_the_same_to_moto() -> anyhow::Result<()> {
    let moto = Moto::start().await?;
    let session = session(&moto).await?;
    let odd = ["a b+ü%&=.csv", "a'(1)!*~.csv", "日本 @:;,$.csv", "sub folder/déjà.csv"];
    for name in odd {
        assert_eq!(session.stat(name).await?, Found::Absent, "{name}");
        session.create(name, name.as_bytes().to_vec()).await?;
        assert_eq!(moto.read(name)?, name.as_bytes(), "another name for them: {name}");
    }
    moto.put("theirs+%41.csv", b"0123456789")?;
    session.create("empty.csv", Vec::new()).await?;
    let mut names: Vec<&str> = odd.into_iter().chain(["empty.csv", "theirs+%41.csv"]).collect();
    names.sort_unstable();
    let mut theirs = moto.names()?;
    theirs.sort_unstable();
    assert_eq!(theirs, names);

    let listed = async |folder: &str, prefix: &str| {
        let listed = session.list(folder, prefix, 100, |_| true).await?;
        let mut listed: Vec<String> =
            listed.into_iter().map(|entry| format!("{} {}", entry.kind, entry.name)).collect();
        listed.sort_unstable();
        anyhow::Ok(listed)
    };
    assert_eq!(listed("", "a").await?, ["file a b+ü%&=.csv", "file a'(1)!*~.csv"]);
    assert_eq!(listed("sub folder", "d").await?, ["file sub folder/déjà.csv"]);
    assert_eq!(listed("", "sub").await?, ["directory sub folder"]);
    assert_eq!(listed("", "").await?.len(), 6);

    assert_eq!(session.read("theirs+%41.csv", 4, 3).await?, b"456");
    assert_eq!(session.read("theirs+%41.csv", 8, 100).await?, b"89");
    assert_eq!(session.read("theirs+%41.csv", 10, 100).await?, b"");
    assert_eq!(session.read("empty.csv", 0, 100).await?, b"");
    let listing = look(&session, "theirs+%41.csv", 10).await;
    assert!(matches!(&listing.found, Found::Present(entry) if entry.bytes == Some(10)), "{listing:?}");
    assert!(listing.sha256.is_some_and(|sha256| sha256.to_string().starts_with("84d89877f0d4041efb6bf91a16f0248f")));

    for name in names {
        session.remove(name).await?;
        assert!(session.remove(name).await.expect_err(name).says_absent(), "{name}");
    }
    assert_eq!(moto.names()?, [""; 0]);
    assert!(session.is_usable());
    Ok(())
}

#[tokio::test]
async fn del_08_keys_that_moto_does_not_know_are_told_and_a_bucket_without_rights_is_not_visible() -> anyhow::Result<()>
{
    let moto = Moto::start().await?;
    let changed = |change: &dyn Fn(&mut ObjectsEndpoint)| {
        let mut endpoint = of(&moto);
        if let Endpoint::Objects(objects) = &mut endpoint {
            change(objects);
        }
        endpoint
    };
    let limits = SessionLimits::default();
    for (endpoint, words) in [
        (changed(&|of| of.secret_key = of.access_key.clone()), "SignatureDoesNotMatch"),
        (changed(&|of| of.access_key = of.secret_key.clone()), "InvalidAccessKeyId"),
    ] {
        let error = Session::connect(&endpoint, &limits).await.expect_err("it is wrong");
        let sentence = error.to_string();
        assert!(error.needs_attention() && sentence.contains("does not accept the access key"), "{sentence}");
        assert!(sentence.contains(words), "{sentence}");
    }
    // The rights are for one bucket.
    let session = Session::connect(&changed(&|of| of.bucket = "elsewhere".to_owned()), &limits).await?;
    assert!(matches!(session.stat("k.csv").await?, Found::NotVisible { .. }));
    let refused = session.create("k.csv", b"content".to_vec()).await.expect_err("it has no rights there");
    assert!(matches!(refused.error, RemoteError::Refused { code: Some(3), .. }), "{refused:?}");
    Ok(())
}
