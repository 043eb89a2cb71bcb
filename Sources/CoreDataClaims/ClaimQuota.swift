import Foundation

/// A bound for the objects that claims have taken, which holds for all workers of a store together.
///
/// A store carries out one claim with a quota of the same name at a time, and counts before it. So there are never more
/// objects than the bound, if only such claims add to those that count.
package struct ClaimQuota {
    /// The condition of the objects that count: claims make objects satisfy it.
    package let counted: NSPredicate
    /// The most objects.
    package let most: Int
    /// The name by which claims agree on the quota.
    package let name: String

    /// Makes a quota.
    package init(counting counted: NSPredicate, most: Int, name: String) {
        self.counted = counted
        self.most = most
        self.name = name
    }
}
