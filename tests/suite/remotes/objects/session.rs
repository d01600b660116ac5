//! Single requests: what their types say must be what lies in the bucket.

use std::sync::Arc;

use waybill::job::contract::Contract;
use waybill::job::evidence::{Answer, PublishForm};
use waybill::job::facts::Found;
use waybill::remote::{Endpoint, RemoteError, Session, SessionLimits, choose_form, look, prove};
use waybill_tests::ObjectStore;
use waybill_tests::object_store::{Fault, Manners};

use super::{endpoint, scratch};
use crate::remote::{PATIENCE, Record, built, names as names_of, writer};

async fn session(store: &ObjectStore, prefix: &str) -> anyhow::Result<Session> {
    Ok(Session::connect(&of(store, prefix), &SessionLimits::default()).await?)
}

fn of(store: &ObjectStore, prefix: &str) -> Endpoint {
    endpoint(&store.url(), store.key_files(), prefix, None)
}

#[tokio::test]
async fn del_05_a_store_shows_that_it_refuses_or_is_found_out_and_is_left_clean() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    let contract = Contract::default();
    for keeps_condition in [true, false] {
        store.set_manners(Manners { keeps_condition, ..Manners::default() });
        let session = session(&store, "in").await?;
        let proof = prove(&session, &scratch()?).await?;
        assert!(proof.size_after_close.shown && proof.creates_whole, "{proof:#?}");
        assert_eq!(proof.create_refuses.shown, keeps_condition, "{proof:#?}");
        assert_eq!(proof.create_refuses.code, keeps_condition.then_some(11));
        let others = [&proof.link_creates, &proof.rename_moves, &proof.rename_replaces, &proof.posix_rename_replaces];
        assert!(
            others.iter().all(|other| !other.shown && other.seen.contains("no links and no renames")),
            "{proof:#?}"
        );
        assert_eq!(choose_form(&proof, &contract, false), keeps_condition.then_some(PublishForm::CreateWhole));
        assert_eq!(choose_form(&proof, &contract, true), None, "nothing is replaced here");
        assert!(proof.left_behind.is_empty() && store.keys().is_empty(), "{:?}", store.keys());
        assert_eq!(session.server().banner, "an S3 store (waybill-test)");
    }
    Ok(())
}

#[tokio::test]
async fn names_are_relative_to_the_prefix_and_never_lead_out_of_it() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    store.put("outside/secret", b"canary");
    store.put("inside", b"canary");
    store.put("in", b"canary");
    store.put("in/sub/deep.csv", b"1");
    for name in ["a b+c%.csv", "a-1.csv", "a-2.csv", "b-1.csv", "é=&?.csv"] {
        store.put(&format!("in/{name}"), name.as_bytes());
    }
    let session = session(&store, "in").await?;
    for name in ["../outside/secret", "./a-1.csv", "/in/a-1.csv", "sub//deep.csv", "", ".."] {
        assert!(matches!(session.read(name, 0, 100).await, Err(RemoteError::Invalid { .. })), "{name}");
        assert!(matches!(session.stat(name).await, Err(RemoteError::Invalid { .. })), "{name}");
        assert!(!session.create(name, b"x".to_vec()).await.expect_err(name).may_exist);
    }
    let listed = async |folder: &str, prefix: &str, most| {
        let listed = session.list(folder, prefix, most, |_| true).await?;
        anyhow::Ok(listed.into_iter().map(|entry| format!("{} {}", entry.kind, entry.name)).collect::<Vec<_>>())
    };
    assert_eq!(listed(".", "a-", 10).await?, ["file a-1.csv", "file a-2.csv"]);
    assert_eq!(listed("", "", 10).await?.len(), 6, "over several pages, with the folder and nothing else");
    assert!(listed("", "", 10).await?.contains(&"directory sub".to_owned()));
    assert_eq!(listed("", "", 3).await?.len(), 3);
    assert_eq!(listed("sub/", "", 10).await?, ["file sub/deep.csv"]);
    assert_eq!(session.list("", "", 10, |name| name == "b-1.csv").await?.len(), 1);
    // Names that must be encoded are signed as they are sent.
    for name in ["a b+c%.csv", "é=&?.csv"] {
        assert_eq!(session.read(name, 0, 100).await?, name.as_bytes());
        assert_eq!(listed("", name, 10).await?, [format!("file {name}")]);
    }
    assert!(session.is_usable());
    Ok(())
}

#[tokio::test]
async fn absent_not_visible_and_a_bucket_that_is_gone_are_told_apart() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    let session = session(&store, "").await?;
    assert_eq!(session.server().directory, "/");
    assert_eq!(session.stat("k.csv").await?, Found::Absent);
    assert!(session.read("k.csv", 0, 10).await.expect_err("nothing is there").says_absent());
    assert!(session.remove("k.csv").await.expect_err("nothing is there").says_absent());
    session.make_directory("in").await?;
    session.create("in/k.csv", b"0123456789".to_vec()).await?;
    session.create("in/empty.csv", Vec::new()).await?;
    assert_eq!(session.read("in/k.csv", 4, 3).await?, b"456");
    assert_eq!(session.read("in/k.csv", 8, 100).await?, b"89");
    assert_eq!(session.read("in/k.csv", 10, 100).await?, b"");
    assert_eq!(session.read("in/empty.csv", 0, 100).await?, b"");
    let listing = look(&session, "in/k.csv", 10).await;
    assert!(matches!(&listing.found, Found::Present(entry) if entry.bytes == Some(10) && entry.kind == "file"));
    assert!(listing.sha256.is_some_and(|sha256| sha256.to_string().starts_with("84d89877f0d4041efb6bf91a16f0248f")));
    assert!(matches!(session.read_digest("in/k.csv", 9).await, Err(RemoteError::Invalid { .. })));
    for refused in [session.rename("in/k.csv", "k").await, session.hardlink("in/k.csv", "k").await] {
        assert!(refused.expect_err("there is none").is_refusal());
    }
    session.remove("in/k.csv").await?;
    assert_eq!(store.keys(), ["in/empty.csv"]);

    store.set_manners(Manners { may_list: false, ..Manners::default() });
    assert!(matches!(session.stat("k.csv").await?, Found::NotVisible { .. }));
    let hidden = Session::connect(&of(&store, ""), &SessionLimits::default()).await?;
    assert!(hidden.stat("in/empty.csv").await.is_ok(), "who may not list may still deliver");

    // A HEAD of what is in no bucket finds nothing, and proves nothing.
    store.set_manners(Manners { has_bucket: false, ..Manners::default() });
    let looked = session.stat("k.csv").await.expect_err("the bucket is gone");
    assert!(looked.is_refusal() && looked.to_string().contains("NoSuchBucket"), "{looked}");
    Ok(())
}

#[tokio::test]
async fn fen_09_a_create_that_is_not_answered_ends_the_session_and_is_the_only_one() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    let session = session(&store, "").await?;
    let spool = tempfile::tempdir()?;
    let file = built(&spool, b"content").await?;
    let (names, record) = (names_of("k")?, Arc::new(Record::default()));
    store.once("PUT", "k.csv", Fault::CutAfter);
    let writer = writer(&session, &names, &file, PublishForm::CreateWhole, &record);
    let sent = writer.send().await?;
    assert_eq!((sent.temporary, sent.bytes, store.keys().len()), (None, 7, 0), "something is there before the fence");
    let cut = writer.publish().await.expect_err("it is not answered");
    assert!(matches!(cut, RemoteError::Unknown { .. }), "{cut}");
    assert!(matches!(&record.answers()[..], [(PublishForm::CreateWhole, Answer::Unanswered { .. })]));
    assert!(!session.is_usable() && writer.publish().await.is_err());
    assert!(matches!(session.stat("k.csv").await, Err(RemoteError::NotSent { .. })));
    let sending = writer.outcome(PATIENCE).await;
    assert!(matches!(sending.publish, Some((PublishForm::CreateWhole, Answer::Unanswered { .. }))), "{sending:?}");
    assert_eq!(store.asked("PUT", "k.csv").len(), 1);
    Ok(())
}

#[tokio::test]
async fn what_one_request_cannot_carry_is_not_begun() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    let limits = SessionLimits { largest_object: 3, ..SessionLimits::default() };
    let session = Session::connect(&of(&store, ""), &limits).await?;
    session.create("fits.csv", b"123".to_vec()).await?;
    let refused = session.create("k.csv", b"1234".to_vec()).await.expect_err("it is too large");
    assert!(!refused.may_exist && matches!(refused.error, RemoteError::NotSent { .. }), "{refused:?}");
    assert_eq!(store.asked("PUT", "k.csv"), []);
    assert!(session.is_usable());
    Ok(())
}
