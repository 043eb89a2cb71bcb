// The compiler expands these classes while it builds the tests. Half of the test is that they compile without a
// warning.

enum Priority: Int16 {
    case low
    case high
}

/// Every form of a property.
@ManagedObject
open class Place: NSManagedObject {
    /// The name on the map: a comment with `var other: Int = 5 {`.
    @Managed
    public var name: String?
    @Managed var population: Int  // { not a block }
    /// Only the class may set it.
    @Managed public private(set) var code: String!
    @Managed("descriptionText") var summary: String?
    @Managed var `default`: Int16
    @Managed var `opening hours`: String?
    /// Overridden by `City`.
    @Managed open var rank: Int

    // Braces in literals must not end the class early.
    static let pattern = "}\("}{")" + #"""#
    let shape = /[{"]\/+/

    func assign(code: String) { self.code = code }

    #if os(Linux) || os(macOS)
    @Managed var here: Int
    #elseif NOWHERE
    @Managed var elsewhere: Int
    #endif
}

/// A subclass of a class with a table.
///
/// It overrides one of the properties.
@ManagedObject
public final class City: Place {
    @Managed
    var priority: Priority
    @Managed var fallback: Priority?; @Managed var twin: City?
    @Managed var districts:
        Set<
            Countries.District
        >
    @Managed var ordered: [Countries.District]
    /// Overrides the property of `Place`.
    @Managed override public var rank: Int
}

enum Countries {
    @ManagedObject
    final class District: NSManagedObject {
        @StrataMacrosTests.Managed var city: Optional<City>
        @Managed @available(*, message: "use { city }") fileprivate var secret: Int
        @Managed dynamic var neighbours: Swift.Set<District>?
    }
}

extension Countries.District {
    @Managed var postalCode: String?
}

@ManagedObject
private class Hidden: NSManagedObject {
    @Managed private var value: Int

    static var readable: AnyKeyPath { \Hidden.value }
}

/// A class without new properties, which has its superclass's table.
@ManagedObject
class Suburb: Place {}

/// All properties are for another platform, so the table stays as it was, without a warning.
@ManagedObject
class Ghost: NSManagedObject {
    #if NOWHERE
    @Managed var value: Int
    #endif
}

func hiddenProperties() -> [CoreData.ManagedPropertyInfo] { Hidden.managedProperties }

func ghostProperties() -> [CoreData.ManagedPropertyInfo] { Ghost.managedProperties }

func localClassRoundTrip(_ value: Int) -> Int {
    final class Local: NSManagedObject {
        @Managed var number: Int
    }
    let local = Local()
    local.number = value
    return local.number
}
