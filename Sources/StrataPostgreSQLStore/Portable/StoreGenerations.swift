import Foundation
import StrataRows
import StrataSQL

/// The numbers of the tables of a portable store, as its metadata notes them.
///
/// A migration of a portable store makes new tables beside the old ones: see ``PortableMigration``. Their names end with a number that no earlier
/// migration of the store has had. The tables that a store was made with have none. So the row of the metadata alone decides which tables count, and a
/// name never stands for two tables.
struct StoreGenerations: Equatable, Sendable {
    /// A migration that was begun, and is not complete.
    ///
    /// As long as there is one, no transaction may write to the store.
    struct Pending: Equatable, Sendable {
        let number: Int
        /// A digest of all that the migration does.
        ///
        /// Only another process that does the same may continue it.
        let plan: Data
        /// The new tables and sequences.
        let names: [String]
    }

    /// The number of the tables that count; 0 for those that the store was made with.
    var current = 0
    /// The highest number that a migration has had.
    var last = 0
    var pending: Pending?
    /// The names of tables and sequences that count no more, and that are still to be dropped.
    var leftovers: [String] = []
    /// The numbers of the migrations that have made a store beside this one, in a separate schema which is still to be dropped.
    var schemas: [Int] = []

    /// The key in the metadata.
    static let key = "StrataGenerations"

    init() {}

    /// Takes them from the metadata of a store.
    ///
    /// The result is `nil` if they cannot be read. Other tables would be taken for those that count.
    init?(in values: [String: Any]) {
        guard let noted = values[Self.key] else { return }
        guard let list = noted as? [String: Any], let current = list["current"] as? Int,
            let last = list["last"] as? Int, current >= 0, last >= current,
            let leftovers = (list["leftovers"] ?? [String]()) as? [String],
            let schemas = (list["schemas"] ?? [Int]()) as? [Int]
        else { return nil }
        (self.current, self.last, self.leftovers, self.schemas) = (current, last, leftovers, schemas)
        guard list["pending"] != nil else { return }
        guard let number = list["pending"] as? Int, number > current, let plan = list["plan"] as? Data,
            let names = list["names"] as? [String]
        else { return nil }
        pending = Pending(number: number, plan: plan, names: names)
    }

    /// The form in which the metadata has them; `nil` if there is nothing to note.
    var propertyList: [String: Any]? {
        guard self != StoreGenerations() else { return nil }
        var list: [String: Any] = ["current": current, "last": last]
        if !leftovers.isEmpty { list["leftovers"] = leftovers }
        if !schemas.isEmpty { list["schemas"] = schemas }
        if let pending {
            list["pending"] = pending.number
            list["plan"] = pending.plan
            list["names"] = pending.names
        }
        return list
    }

    /// The names of all tables and sequences that a removal of the store finds besides those that count.
    var otherNames: [String] { leftovers + (pending?.names ?? []) }

    /// Whether killed migrations have left something.
    var needsUpkeep: Bool { pending != nil || !leftovers.isEmpty || !schemas.isEmpty }

    /// Ends the migration that is under way, whose tables are to be dropped.
    mutating func giveUp() {
        leftovers += pending?.names ?? []
        pending = nil
    }

    /// The name of a table or an index, by the name that the model gives it.
    static func name(_ name: String, _ number: Int) -> String {
        number == 0 ? name : PostgreSQLName.limited("\(name)_g\(number)")
    }
}

extension SQLMapping {
    /// Maps a model to tables with a number: see ``StoreGenerations``.
    convenience init(_ schema: Schema, configuration: String?, generation number: Int) throws {
        try self.init(
            schema,
            configuration: configuration,
            dialect: .postgresql,
            stored: { StoreGenerations.name($0, number) }
        )
    }
}
