import StrataPredicates
import Synchronization

/// The name under which a ``ValueTransformer`` is registered.
///
/// ```swift
/// let name = NSValueTransformerName("Reversed")
/// print(ValueTransformer(forName: name) == nil)
/// ```
public struct NSValueTransformerName: RawRepresentable, Hashable, Sendable {
    /// The name as text, as an attribute's `valueTransformerName` has it.
    public var rawValue: String

    /// Wraps a text.
    ///
    /// - Parameter rawValue: The text.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Wraps a text.
    ///
    /// - Parameter rawValue: The text.
    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    /// Archived data to the object in it, of the property-list classes only: ``NSSecureUnarchiveFromDataTransformer``.
    public static let secureUnarchiveFromDataTransformerName =
        NSValueTransformerName(rawValue: "NSSecureUnarchiveFromData")

    /// Archived data to the object in it, of any class that the program has.
    ///
    /// For old models; it is not secure.
    public static let keyedUnarchiveFromDataTransformerName =
        NSValueTransformerName(rawValue: "NSKeyedUnarchiveFromData")

    /// Archived data to the object in it, of any class that the program has.
    ///
    /// For old models; it is not secure.
    public static let unarchiveFromDataTransformerName = NSValueTransformerName(rawValue: "NSUnarchiveFromData")
}

/// Turns values of one class into values of another, and perhaps back.
///
/// For a transformable attribute, subclass it so that ``transformedValue(_:)`` turns the object into `Data` and
/// ``reverseTransformedValue(_:)`` turns the data back, and register an instance before the first store is loaded:
///
/// ```swift
/// final class Reversed: ValueTransformer {
///     override class func allowsReverseTransformation() -> Bool { true }
///     override func transformedValue(_ value: Any?) -> Any? { (value as? Data).map { Data($0.reversed()) } }
///     override func reverseTransformedValue(_ value: Any?) -> Any? { transformedValue(value) }
/// }
/// ValueTransformer.setValueTransformer(Reversed(), forName: NSValueTransformerName("Reversed"))
/// ```
///
/// One instance serves all contexts at once, so both methods must be safe to call from any thread. The registry is.
open class ValueTransformer: NSObject {
    /// Creates a transformer.
    ///
    /// A class that is found by the name in a model is made with this initialiser.
    public override init() {
        super.init()
    }

    // MARK: - To override

    /// The class of the results of ``transformedValue(_:)``.
    ///
    /// Default `NSObject`.
    ///
    /// - Returns: The class, of which every result is.
    open class func transformedValueClass() -> AnyClass { NSObject.self }

    /// Whether there is a way back.
    ///
    /// Default `true`. It must be `true` for a transformable attribute.
    ///
    /// - Returns: False for one that only turns values into others.
    open class func allowsReverseTransformation() -> Bool { true }

    /// The transformed value; `nil` when there is none.
    ///
    /// By default the value itself.
    ///
    /// - Parameter value: The value to transform; `nil` for no value.
    /// - Returns: The new value, or `nil`.
    open func transformedValue(_ value: Any?) -> Any? { value }

    /// The value that ``transformedValue(_:)`` made `value` from.
    ///
    /// By default the transformed value.
    ///
    /// Stops the program when the class does not allow it.
    ///
    /// - Parameter value: What ``transformedValue(_:)`` has given; `nil` for no value.
    /// - Returns: The former value, or `nil`.
    open func reverseTransformedValue(_ value: Any?) -> Any? {
        precondition(
            Self.allowsReverseTransformation(),
            "\(Self.self) does not allow reverse transformations; override reverseTransformedValue(_:) and "
                + "allowsReverseTransformation()."
        )
        return transformedValue(value)
    }

    // MARK: - Registry

    /// Registers a transformer under a name, replaces the one with that name, or (with `nil`) removes it.
    ///
    /// From any thread.
    ///
    /// - Parameters:
    ///   - transformer: The transformer; `nil` removes the one with that name.
    ///   - name: The name, as models have it.
    public class func setValueTransformer(_ transformer: ValueTransformer?, forName name: NSValueTransformerName) {
        TransformerRegistry.shared.set(transformer, name)
    }

    /// The names of all registered transformers, in no order.
    ///
    /// From any thread.
    ///
    /// - Returns: The names; those of classes that were never asked for are not among them.
    public class func valueTransformerNames() -> [NSValueTransformerName] {
        TransformerRegistry.shared.names
    }
}

/// The door through which `ValueTransformer(forName:)` returns the registered instance instead of a new one.
///
/// ```swift
/// let transformer = ValueTransformer(forName: .secureUnarchiveFromDataTransformerName)
/// ```
public protocol ValueTransformerLookup {}

extension ValueTransformer: ValueTransformerLookup {}

extension ValueTransformerLookup where Self: ValueTransformer {
    /// The transformer that is registered under a name.
    ///
    /// When there is none, but `name` is the name of a subclass (qualified with its module, unless the main program or this
    /// module has it), an instance of it is made and registered. `nil` when there is neither, or when it is not of the class
    /// that is asked.
    ///
    /// - Parameter name: The name, as models have it.
    public init?(forName name: NSValueTransformerName) {
        guard let transformer = TransformerRegistry.shared.transformer(name) as? Self else { return nil }
        self = transformer
    }
}

/// The registered transformers.
///
/// Any thread may call any member.
private final class TransformerRegistry: Sendable {
    static let shared = TransformerRegistry()

    /// A transformer, to cross threads.
    private struct Entry: @unchecked Sendable {
        // @unchecked Sendable: users' subclasses promise that instances may be used from any thread, see ValueTransformer.
        let transformer: ValueTransformer
    }

    private let entries: Mutex<[NSValueTransformerName: Entry]>

    private init() {
        let secure = Entry(transformer: NSSecureUnarchiveFromDataTransformer())
        let loose = Entry(transformer: AnyClassUnarchiveTransformer())
        entries = Mutex([
            .secureUnarchiveFromDataTransformerName: secure,
            .keyedUnarchiveFromDataTransformerName: loose,
            .unarchiveFromDataTransformerName: loose,
        ])
    }

    var names: [NSValueTransformerName] { entries.withLock { Array($0.keys) } }

    func set(_ transformer: ValueTransformer?, _ name: NSValueTransformerName) {
        let entry = transformer.map(Entry.init)
        entries.withLock { $0[name] = entry }
    }

    func transformer(_ name: NSValueTransformerName) -> ValueTransformer? {
        if let known = entries.withLock({ $0[name] }) { return known.transformer }
        guard let found = Self.classNamed(name.rawValue) else { return nil }
        // Made outside the lock, for it is the user's code; of two threads that make one, the first wins.
        let made = Entry(transformer: TransformerMaking.make(found))
        return entries.withLock { entries in
            if let known = entries[name] { return known }
            entries[name] = made
            return made
        }.transformer
    }

    private static func classNamed(_ name: String) -> ValueTransformer.Type? {
        if name == "NSSecureUnarchiveFromDataTransformer" { return NSSecureUnarchiveFromDataTransformer.self }
        let bare = name.hasPrefix(".") ? String(name.dropFirst()) : name
        let candidates = bare.contains(".") ? [bare] : ["\(mainModule).\(bare)", bare]
        if let found = candidates.lazy.compactMap({ FoundationClasses.named($0) as? ValueTransformer.Type }).first {
            return found
        }
        // A class of another module, or one that is private or inside of another type.
        let own = bare.split(separator: ".").last.map(String.init) ?? bare
        let found = ClassRecords.classes(named: own).compactMap { $0 as? ValueTransformer.Type }.filter {
            let full = String(reflecting: $0)
            return full == bare || full.hasSuffix("." + bare)
        }
        return found.count == 1 ? found[0] : nil
    }

    /// The module of the main program, where bare names are looked up.
    private static let mainModule: String = {
        let name = Bundle.main.executableURL?.lastPathComponent ?? ""
        return String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }()
}

/// Makes transformers of classes that are known by name only.
///
/// Swift calls `init()` of a class that is a value only if the initialiser is `required`. But then no subclass could have an
/// initialiser of its own, or write `override init()`, as on Apple's platforms. The call that Swift makes is the same for both: it
/// takes the initialiser from the class's table, where that of `NSObject` has its place. So a class that does declare it as
/// required stands in for the transformer's class in the type of the call. A class without `init()` stops the program, with its name.
enum TransformerMaking {
    // Not optimised, so that nobody concludes from the type of the call which initialiser it is.
    @_optimize(none)
    static func make(_ type: ValueTransformer.Type) -> ValueTransformer {
        let made: NSObject = unsafeBitCast(type, to: _TransformerStandIn.Type.self).init()
        // It is of the class `type`.
        return unsafeDowncast(made, to: ValueTransformer.self)
    }
}

/// Stands in for the class of a transformer in ``TransformerMaking``; of no use elsewhere.
///
/// Open, because of a class that nobody else can inherit from the compiler may call the initialiser without a look at the table.
@_documentation(visibility: internal)
open class _TransformerStandIn: NSObject {
    /// Makes nothing of use.
    public required override init() {
        super.init()
    }
}
