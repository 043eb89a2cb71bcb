import StrataPredicates
import StrataRows

/// The names that one database gives to the tables and columns of a model.
///
/// The results of the closures are raw names: ``name`` makes the text in a statement from each.
package struct SQLNaming: Sendable {
    /// The columns at the beginning of every table of rows: the primary key, the entity's number, and the version.
    package let key: SQLName
    package let entity: SQLName
    package let version: SQLName
    /// The names of the store's own tables and of other objects, in upper case.
    package let reserved: Set<String>
    /// Columns that each table has of itself.
    package let reservedColumns: Set<String>
    /// The text of a name in statements.
    package let name: @Sendable (String) -> SQLName
    /// The table of a hierarchy, by the name of its root entity.
    package let table: @Sendable (_ root: String) -> String
    /// The column of an attribute, or of a composite attribute's leaf, whose name has dots.
    package let attribute: @Sendable (_ name: String) -> String
    /// The column that a composite attribute's leaf had in former versions, and still has in tables of that time.
    ///
    /// It is `nil` if it never had another one.
    package let formerLeaf: (@Sendable (_ path: String) -> String)?
    /// The column with the key of a to-one relationship's destination.
    package let toOne: @Sendable (_ name: String) -> String
    /// The column with the number of a to-one relationship's concrete destination, by the number of the declared one.
    package let destination: @Sendable (_ number: Int, _ name: String, _ suffix: String) -> String
    /// The column with the position in the ordered relationship at the other end.
    package let order: @Sendable (_ name: String, _ suffix: String) -> String
    /// The column with the key of the owner in a relationship without an inverse.
    package let owner: @Sendable (Relationship, _ number: Int) -> String
    /// The column with the position in an ordered relationship without an inverse.
    package let ownerOrder: @Sendable (Relationship, _ number: Int) -> String
    /// The table of a many-to-many relationship, by the number of the entity that declares it.
    package let joinTable: @Sendable (Relationship, _ number: Int) -> String
    /// The four columns of that table; `nil` for the names of Apple's files, which ``JoinNamer`` finds.
    package let joinColumns: (@Sendable (_ owning: Relationship, _ inverse: Relationship) -> JoinColumns)?
    /// The column with the folded text of an attribute, by the column of the attribute.
    package let folded: @Sendable (_ column: String, StringFolding) -> String
    /// The unique index of a constraint.
    package let uniqueIndex: @Sendable (_ entity: EntityLayout, _ attributes: [String]) -> String
    /// The sequence that gives a table its keys, by the name of the table; `nil` if there is none.
    package let sequence: (@Sendable (_ table: String) -> String)?

    /// The columns of a join table: the keys of the two sides, and the positions of the members.
    package struct JoinColumns: Sendable {
        package let first: String
        package let second: String
        package let firstOrder: String
        package let secondOrder: String

        package init(first: String, second: String, firstOrder: String, secondOrder: String) {
            self.first = first
            self.second = second
            self.firstOrder = firstOrder
            self.secondOrder = secondOrder
        }
    }

    package init(
        key: SQLName,
        entity: SQLName,
        version: SQLName,
        reserved: Set<String>,
        reservedColumns: Set<String> = [],
        name: @escaping @Sendable (String) -> SQLName,
        table: @escaping @Sendable (String) -> String,
        attribute: @escaping @Sendable (String) -> String,
        toOne: @escaping @Sendable (String) -> String,
        destination: @escaping @Sendable (Int, String, String) -> String,
        order: @escaping @Sendable (String, String) -> String,
        owner: @escaping @Sendable (Relationship, Int) -> String,
        ownerOrder: @escaping @Sendable (Relationship, Int) -> String,
        joinTable: @escaping @Sendable (Relationship, Int) -> String,
        joinColumns: (@Sendable (Relationship, Relationship) -> JoinColumns)?,
        folded: @escaping @Sendable (String, StringFolding) -> String,
        uniqueIndex: @escaping @Sendable (EntityLayout, [String]) -> String,
        sequence: (@Sendable (String) -> String)? = nil,
        formerLeaf: (@Sendable (String) -> String)? = nil
    ) {
        self.key = key
        self.entity = entity
        self.version = version
        self.reserved = reserved
        self.reservedColumns = reservedColumns
        self.name = name
        self.table = table
        self.attribute = attribute
        self.formerLeaf = formerLeaf
        self.toOne = toOne
        self.destination = destination
        self.order = order
        self.owner = owner
        self.ownerOrder = ownerOrder
        self.joinTable = joinTable
        self.joinColumns = joinColumns
        self.folded = folded
        self.uniqueIndex = uniqueIndex
        self.sequence = sequence
    }

    /// The names of Apple's framework.
    package static let apple = SQLNaming(
        key: .key,
        entity: .entity,
        version: .version,
        reserved: ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"],
        name: { SQLName($0) },
        table: { "Z" + $0.uppercased() },
        // Elements of composite attributes are named by their own names. The rule for nested ones is our choice.
        attribute: { "Z" + ($0.split(separator: ".").last ?? "").uppercased() },
        toOne: { "Z" + $0.uppercased() },
        destination: { "Z\($0)_" + $1.uppercased() + $2 },
        order: { "Z_FOK_" + $0.uppercased() + $1 },
        owner: { "Z\($1)" + $0.name.uppercased() },
        ownerOrder: { "Z_FOK_\($1)" + $0.name.uppercased() },
        joinTable: { "Z_\($1)" + $0.name.uppercased() },
        joinColumns: nil,
        // Apple's files have none.
        folded: { column, _ in column },
        uniqueIndex: { "Z_\($0.name)_UNIQUE_" + $1.joined(separator: "_") },
        formerLeaf: { "Z" + $0.replacing(".", with: "_").uppercased() }
    )
}
