import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

/// The keys of user info by which a model tells one database what it wants; `nil` for a database that does not look there.
package struct SQLHints: Sendable {
    /// What the table of a root entity, or of a many-to-many relationship, is called.
    package let table: String
    /// What the column of an attribute, or of a to-one relationship, is called.
    package let column: String
    /// In which ways the text of an attribute is kept folded as well: `c`, `d` or `cd`, several of them with commas in between.
    package let folded: String
    /// How names begin that are the store's own.
    package let reservedPrefix: String
    /// Columns that each table has of itself.
    package let reservedColumns: Set<String>
    /// The longest name, in bytes.
    package let longestName: Int

    package init(
        table: String,
        column: String,
        folded: String,
        reservedPrefix: String,
        reservedColumns: Set<String>,
        longestName: Int
    ) {
        self.table = table
        self.column = column
        self.folded = folded
        self.reservedPrefix = reservedPrefix
        self.reservedColumns = reservedColumns
        self.longestName = longestName
    }

    /// The name that a user info gives, if it gives one.
    ///
    /// - Parameters:
    ///   - key: Whether the name is that of a table or of a column.
    ///   - userInfo: The user info.
    ///   - subject: What errors call the entity or property.
    /// - Returns: The name.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) for one that cannot be.
    package func name(_ key: KeyPath<SQLHints, String>, _ userInfo: [String: String]?, _ subject: String) throws
        -> String?
    {
        guard let name = userInfo?[self[keyPath: key]] else { return nil }
        let reason: String
        if name.isEmpty || name.utf8.contains(0) {
            reason = "is empty, or has the character U+0000"
        } else if name.utf8.count > longestName {
            reason = "is longer than \(longestName) bytes"
        } else if name.lowercased().hasPrefix(reservedPrefix) {
            reason = "begins with \(reservedPrefix), as names of the store itself do"
        } else if key == \.column, reservedColumns.contains(name) {
            reason = "is the name of a column that each table has of itself"
        } else {
            return name
        }
        throw Self.refused("\"\(self[keyPath: key])\" of \(subject) \(reason). Give it another name.")
    }

    /// In which ways the text of an attribute is kept folded, in a fixed order.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if the text says something else, or the attribute is no plain text.
    package func foldings(of slot: Slot, in layout: EntityLayout) throws -> [StringFolding] {
        guard let text = layout.propertyInfo[slot.name]?[folded] else { return [] }
        let subject = "\"\(folded)\" of \(layout.name).\(slot.name)"
        guard slot.type == .string, !slot.isDerived else {
            throw Self.refused("\(subject) is for attributes of type String that are not derived.")
        }
        var foldings: Set<StringFolding> = []
        for part in text.split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces) }) {
            guard let folding = StringFolding.named(part) else {
                throw Self.refused(
                    "\(subject) is \"\(text)\"; it may be c, d or cd, or several of them with commas in between."
                )
            }
            foldings.insert(folding)
        }
        return foldings.sorted { $0.rawValue < $1.rawValue }
    }

    private static func refused(_ text: String) -> CocoaError {
        CocoaError.described(.persistentStoreIncompatibleSchema, userInfo: [NSLocalizedDescriptionKey: text])
    }
}

extension StringFolding {
    /// What a predicate has in brackets for a folding by case, accents or both.
    package var letters: String { (contains(.case) ? "c" : "") + (contains(.diacritics) ? "d" : "") }

    fileprivate static func named(_ letters: String) -> StringFolding? {
        [.case, .diacritics, [.case, .diacritics]].first { $0.letters == letters }
    }
}
