//! What an action is about: the target that the path or the draft names, or that has its identifiers.

use shared::{
    id::{CollectionId, ProductId, ThngId},
    identifier::Identifier,
};

use super::{
    super::{actions::Scope, named, references::resolve_product},
    Making,
    faults::in_body,
};
use crate::{
    domain::{
        action_draft::ActionDraft,
        collection::Collection,
        grant::Limit,
        reference::Reference,
        resource::{Product, Thng},
        scopes::Scopes,
    },
    error::{ActionsError, CommonError, ServiceError},
    store::{
        Tx,
        identifiers::{self, Match},
    },
};

/// What an action is about.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    pub(super) thng: Option<ThngId>,
    pub(super) product: Option<ProductId>,
    pub(super) collection: Option<CollectionId>,
    /// The projects that it belongs to.
    pub(super) projects: Vec<String>,
}

impl Making<'_> {
    /// The target that the path names for all actions.
    pub(super) async fn of_path(
        &mut self,
        tx: &mut Tx,
        scope: Scope<'_>,
    ) -> Result<Option<Target>, ServiceError> {
        match scope {
            Scope::Account => Ok(None),
            Scope::Thng(text) => self.thng(tx, text).await.map(Some),
            Scope::Product(text) => self.product(tx, text).await.map(Some),
            Scope::Collection(text) => self.collection(tx, text).await.map(Some),
        }
    }

    /// The target that a draft names; it may name none.
    pub(super) async fn of_draft(
        &mut self,
        tx: &mut Tx,
        draft: &ActionDraft,
    ) -> Result<Target, ServiceError> {
        let (mut thng, mut product) =
            (draft.thng.as_ref().map(ToString::to_string), draft.product.as_ref().map(ToString::to_string));
        if !draft.names_something() {
            // A Thng may only create actions about itself.
            if let Limit::Itself(itself) = self.grant.limit() {
                thng = Some(itself.clone());
            } else if let Some(all) = draft.identifiers.as_ref().filter(|all| !all.is_empty()) {
                (thng, product) = self.by_identifiers(tx, all).await?;
            }
        }
        let mut target = Target::default();
        if let Some(text) = thng {
            let text = self.of_pair(tx, text, product.as_deref()).await?;
            target = self.thng(tx, &text).await.map_err(|error| in_body("thng", error))?;
        }
        if let Some(text) = product {
            let named = self.product(tx, &text).await.map_err(|error| in_body("product", error))?;
            // Spec gap: a Thng with a product that is not its own is refused.
            if let (Some(own), true) = (target.product, target.product != named.product) {
                return Err(ActionsError::OtherProduct(own).into());
            }
            target.product = named.product;
            if target.thng.is_none() {
                target.projects = named.projects;
            }
        }
        if let Some(collection) = &draft.collection {
            let named = self.collection(tx, &collection.to_string()).await;
            let named = named.map_err(|error| in_body("collection", error))?;
            target.collection = named.collection;
            if target.thng.is_none() && target.product.is_none() {
                target.projects = named.projects;
            }
        }
        Ok(target)
    }

    /// Of several Thngs that an identifier names, that of the product that is named beside it.
    async fn of_pair(
        &self,
        tx: &mut Tx,
        thng: String,
        product: Option<&str>,
    ) -> Result<String, ServiceError> {
        let (Some(product), Ok(Reference::<ThngId>::Identifier(named))) = (product, thng.parse()) else {
            return Ok(thng);
        };
        let found = identifiers::find(tx, self.actor.account, "thng", &named).await?;
        if !matches!(found, Match::Many(_)) {
            return Ok(thng);
        }
        // An absent product is reported where it is resolved.
        let Ok(product) = resolve_product(tx, self.actor.account, product).await else { return Ok(thng) };
        let pair = (named.key.as_str(), named.value.as_str());
        let found = self.state.observers.find_of_product(tx, self.actor.account, pair, product).await?;
        Ok(found.map_or(thng, |id| id.to_string()))
    }

    /// The Thng and the product that have these identifiers.
    // Spec gap: how identifiers name what an action is about is not shown. Each pair that belongs to a Thng or
    // product must belong to one alone, and all to the same; at least one must belong to something.
    async fn by_identifiers(
        &self,
        tx: &mut Tx,
        pairs: &std::collections::BTreeMap<String, String>,
    ) -> Result<(Option<String>, Option<String>), ServiceError> {
        // The product first: of several Thngs with one serial it decides.
        let mut found = [("product", None::<String>), ("thng", None)];
        for index in 0..found.len() {
            let product = found[0].1.clone();
            let Some((kind, known)) = found.get_mut(index) else { continue };
            for (key, value) in pairs {
                let identifier = Identifier { key: key.clone(), value: value.clone() };
                let mut matched = identifiers::find(tx, self.actor.account, kind, &identifier).await?;
                let product = product.as_ref().and_then(|id| id.parse().ok());
                if let (true, Match::Many(_), Some(product)) = (*kind == "thng", &matched, product) {
                    let pair = (key.as_str(), value.as_str());
                    let of_product =
                        self.state.observers.find_of_product(tx, self.actor.account, pair, product).await?;
                    matched = of_product.map_or(matched, |id| Match::One(id.to_string()));
                }
                match matched {
                    Match::None => {}
                    Match::One(id) if known.as_ref().is_none_or(|known| *known == id) => *known = Some(id),
                    Match::One(_) => return Err(ActionsError::IdentifiersOfSeveral { kind }.into()),
                    Match::Many(count) => {
                        return Err(CommonError::Ambiguous { kind, identifier, count }.into());
                    }
                }
            }
        }
        match found {
            [(_, None), (_, None)] => Err(ActionsError::IdentifiersUnknown.into()),
            [(_, product), (_, thng)] => Ok((thng, product)),
        }
    }

    async fn thng(&mut self, tx: &mut Tx, text: &str) -> Result<Target, ServiceError> {
        if let Some(target) = self.thngs.get(text) {
            return Ok(target.clone());
        }
        let thng: Thng = named::find(tx, self.actor, self.grant, text).await?;
        let target = Target {
            thng: Some(thng.id),
            product: thng.product,
            projects: projects(thng.details.common.scopes),
            ..Target::default()
        };
        self.thngs.insert(text.to_owned(), target.clone());
        Ok(target)
    }

    pub(super) async fn product(&self, tx: &mut Tx, text: &str) -> Result<Target, ServiceError> {
        let product: Product = named::find(tx, self.actor, self.grant, text).await?;
        let projects = projects(product.details.common.scopes);
        Ok(Target { product: Some(product.id), projects, ..Target::default() })
    }

    pub(super) async fn collection(&self, tx: &mut Tx, text: &str) -> Result<Target, ServiceError> {
        let found: Collection = named::find(tx, self.actor, self.grant, text).await?;
        let projects = projects(found.details.common.scopes);
        Ok(Target { collection: Some(found.id), projects, ..Target::default() })
    }
}

pub(super) fn projects(scopes: Option<Scopes>) -> Vec<String> {
    scopes.map(|scopes| scopes.projects).unwrap_or_default()
}
