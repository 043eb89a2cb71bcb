import CoreData

/// One version of a package, for one architecture.
///
/// Name, version and architecture together are unique.
@ManagedObject
final class Package: NSManagedObject {
    @Managed var name: String
    @Managed var version: String
    /// The version that the authors gave to it, without the epoch in front.
    @Managed var upstreamVersion: String
    /// Debian's own revision behind it; `nil` for packages that are made for Debian.
    @Managed var revision: String?
    @Managed var architecture: String
    @Managed var synopsis: String
    @Managed var homepage: URL?
    @Managed var priority: Priority?
    /// The size in bytes; 0 if the index does not contain it.
    @Managed var installedSize: Int64
    /// The size in bytes; 0 if the index does not contain it.
    @Managed var downloadSize: Int64
    @Managed var fileName: String?
    @Managed var sha256: String?
    @Managed var status: String?
    /// The date of the index that this came from.
    @Managed var indexedAt: Date
    @Managed var importedAt: Date

    @Managed var section: Section?
    @Managed var maintainer: Maintainer?
    /// The dependencies of this package.
    ///
    /// A dependency is on a name, which any package may provide.
    @Managed var dependencies: Set<PackageName>
    @Managed var recommendations: Set<PackageName>
}

/// The importance of a package for a system, according to Debian's policy.
enum Priority: String, Sendable {
    case required
    case important
    case standard
    case optional
    case extra
}

/// A name that packages depend on.
///
/// It is that of a package in the index, or of none, such as the name of a virtual package.
@ManagedObject
final class PackageName: NSManagedObject {
    @Managed var name: String
    @Managed var dependents: Set<Package>
    @Managed var recommenders: Set<Package>
}

// `Section` and `Maintainer` are generated: their entities have the code generation "Class Definition" in the model.
