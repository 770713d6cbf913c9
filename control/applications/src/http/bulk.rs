//! Several resources in one request.

use std::sync::Arc;

use super::projects::ProjectDocument;
use crate::{
    domain::project::{Project, ProjectChange},
    service::Core,
};

web::bulk!(
    Arc<Core>,
    Core,
    projects,
    Project,
    ProjectChange,
    ProjectDocument,
    "/projects",
    "Projects",
    "projects"
);
