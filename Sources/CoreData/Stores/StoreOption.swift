import Foundation

/// How the values of a store's options are understood.
enum StoreOption {
    /// Whether an option is switched on: by a truth value, a number other than 0, or a text such as "YES".
    static func flag(_ value: Any?) -> Bool {
        (value as? Bool) ?? (value as? NSNumber)?.boolValue
            ?? ((value as? String).map { ["YES", "true", "1"].contains($0) } ?? false)
    }
}
