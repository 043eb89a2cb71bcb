/// The stores of a ``TenantContainer``, and what has happened to them since the container was made.
///
/// ```swift
/// let figures = tenants.statistics()
/// print(figures.open, figures.opened, figures.failed)
/// ```
public struct TenantStatistics: Sendable, Equatable {
    /// The stores that are open, including those in use.
    public internal(set) var open = 0
    /// The stores of which a ``Tenant`` exists.
    public internal(set) var inUse = 0
    /// The stores that are being opened.
    public internal(set) var opening = 0
    /// The stores that are being closed, migrated or destroyed.
    public internal(set) var closing = 0
    /// How often a store was opened.
    public internal(set) var opened = 0
    /// How often a store was closed.
    public internal(set) var closed = 0
    /// How often a store could not be opened.
    public internal(set) var failed = 0
}
