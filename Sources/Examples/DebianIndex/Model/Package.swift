import CoreData

/// One version of a package, for one architecture.
///
/// Name, version and architecture together are unique.
@ManagedObject
final class Package: NSManagedObject {
    @Managed var name: String
    @Managed var version: String
    /// The version that the authors gave it, without the epoch in front.
    @Managed var upstreamVersion: String
    /// Debian's own number behind it; `nil` for packages that are made for Debian.
    @Managed var revision: String?
    @Managed var architecture: String
    @Managed var synopsis: String
    @Managed var homepage: URL?
    @Managed var priority: Priority?
    /// In bytes; 0 when the index does not say.
    @Managed var installedSize: Int64
    /// In bytes; 0 when the index does not say.
    @Managed var downloadSize: Int64
    @Managed var fileName: String?
    @Managed var sha256: String?
    @Managed var status: String?
    /// When the index that this came from was written.
    @Managed var indexedAt: Date
    @Managed var importedAt: Date

    @Managed var section: Section?
    @Managed var maintainer: Maintainer?
    /// What this package needs.
    ///
    /// A dependency is on a name, which any package may provide.
    @Managed var dependencies: Set<PackageName>
    @Managed var recommendations: Set<PackageName>
}

/// How much a system needs a package, as Debian's policy ranks it.
enum Priority: String, Sendable {
    case required
    case important
    case standard
    case optional
    case extra
}

/// A name that packages depend on: of a package in the index, or of none, as a virtual package has.
@ManagedObject
final class PackageName: NSManagedObject {
    @Managed var name: String
    @Managed var dependents: Set<Package>
    @Managed var recommenders: Set<Package>
}

// `Section` and `Maintainer` are generated: their entities have the code generation "Class Definition" in the model.
